"""The samples of the recent past that the alerts' expressions look at: what a Prometheus would have kept of them."""

from collections.abc import Iterable, Mapping, Sequence

from pinchpoint.alerting.labels import Labels, Matcher, labels_of
from pinchpoint.alerting.track import Track, milliseconds

MAX_SERIES = 5_000
MAX_SAMPLES_PER_SERIES = 3_000  # 12 hours at a sample every 15 s

# A series' name, the names of its labels (always the same for a name), their values, and the number.
Sample = tuple[str, tuple[str, ...], tuple[str, ...], float]


class Series:
    """A bounded store of samples, appended batch by batch.

    ``needs`` tells how many seconds back each series name is looked at (``promql.needs_of``): other names are not kept.
    ``target_labels`` are what a scrape would add to each series (job, instance).

    Beyond ``max_series`` a new series is refused (``refused_series``, of the last batch) and those that are there go
    on; beyond ``max_samples`` the series' oldest samples go (``cut_samples``, ever). Is not: a database, and nothing
    survives it.
    """

    def __init__(
        self,
        needs: Mapping[str, float],
        *,
        target_labels: Mapping[str, str] | None = None,
        max_series: int = MAX_SERIES,
        max_samples: int = MAX_SAMPLES_PER_SERIES,
    ) -> None:
        self.refused_series = 0
        self.cut_samples = 0
        self._needs = {name: milliseconds(seconds) for name, seconds in needs.items()}
        self._target_labels = dict(target_labels or {})
        self._max_series, self._max_samples = max_series, max_samples
        self._now = 0
        self._tracks: dict[tuple[str, tuple[str, ...]], Track] = {}
        self._named: dict[str, dict[tuple[str, ...], Track]] = {}  # the same, by name and label values
        self._matching: dict[str, dict[tuple[Matcher, ...], Sequence[Track]]] = {}  # of each name

    @property
    def names(self) -> frozenset[str]:
        """The series names that are kept, and need be given to ``append``."""
        return frozenset(self._needs)

    def __len__(self) -> int:
        return len(self._tracks)

    def append(self, now: float, samples: Iterable[Sample]) -> None:
        """All samples of ``now`` (Unix seconds). A series that is not among them is stale from now on.

        Of two samples of one series the first counts. When the clock was set back, what lies in its future is
        forgotten.
        """
        at = milliseconds(now)
        if at <= self._now:
            self._forget_from(at)
        self._now = at
        self.refused_series = 0
        tracks = self._tracks
        for name, label_names, label_values, value in samples:
            track = tracks.get((name, label_values)) or self._new(name, label_names, label_values)
            if track is not None and not (track.times and track.times[-1] == at):
                track.append(at, value)
        self._age(at)

    def move(self, seconds: float) -> None:
        """Goes over to a clock that is ahead by ``seconds``: for whoever knows that the clock was set."""
        by = milliseconds(seconds)
        self._now += by
        for track in self._tracks.values():
            track.move(by)

    def matching(self, name: str, matchers: tuple[Matcher, ...]) -> Sequence[Track]:
        """The series of that name whose labels meet all conditions, stale ones too."""
        known = self._matching.setdefault(name, {})
        found = known.get(matchers)
        if found is None:
            tracks = self._named.get(name, {}).values()
            found = [track for track in tracks if all(each.accepts(track.labels) for each in matchers)]
            known[matchers] = found
        return found

    def _new(self, name: str, label_names: tuple[str, ...], label_values: tuple[str, ...]) -> Track | None:
        if name not in self._needs:
            return None
        if len(self._tracks) >= self._max_series:
            self.refused_series += 1
            return None
        track = Track(self._labels(label_names, label_values))
        self._tracks[name, label_values] = self._named.setdefault(name, {})[label_values] = track
        self._matching.pop(name, None)
        return track

    def _labels(self, names: tuple[str, ...], values: tuple[str, ...]) -> Labels:
        return labels_of(self._target_labels | dict(zip(names, values, strict=True)))

    def _age(self, now: int) -> None:
        gone = []
        for key, track in self._tracks.items():
            needed = self._needs[key[0]]
            if track.times[-1] < now:
                track.is_missing(now)
                if track.times[-1] < now - needed:
                    gone.append(key)
                    continue
            # A quarter more is kept, so that not every sample moves all others.
            if now - track.times[0] > 1.25 * needed or len(track.times) > 1.25 * self._max_samples:
                self.cut_samples += track.cut(now - needed, self._max_samples)
        self._drop(gone)

    def _forget_from(self, now: int) -> None:
        for track in self._tracks.values():
            track.forget_from(now)
        self._drop([key for key, track in self._tracks.items() if not track.times])

    def _drop(self, keys: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        for name, label_values in keys:
            del self._tracks[name, label_values], self._named[name][label_values]
            self._matching.pop(name, None)
