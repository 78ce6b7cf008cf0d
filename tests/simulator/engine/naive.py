"""The same engine written down plainly: every running request is looked at in every step. Slow, and easy to believe.

It shares the block pool, the ledger and the step times with the engine that it judges; who computes what in which step,
who is preempted and when anybody is done is worked out here anew.
"""

from random import Random

from pinchpoint.simulator.engine.batching import Batch
from pinchpoint.simulator.engine.blocks import BlockPool
from pinchpoint.simulator.engine.conditions import Conditions
from pinchpoint.simulator.engine.ledger import Ledger
from pinchpoint.simulator.engine.timing import StepTimer
from pinchpoint.simulator.world import Host


class Progress:
    def __init__(self, request):
        self.request = request
        self.known, self.computed, self.own, self.shared = request.prompt_tokens, 0, 0, 0
        self.in_prefill = False
        self.token_times = []


class NaiveEngine:
    def __init__(self, spec, seed):
        self.spec, self.now, self.conditions = spec, 0.0, Conditions()
        self.ledger, self.pool = Ledger(spec.max_model_len), BlockPool(spec.num_gpu_blocks)
        self.timer = StepTimer(spec, Host(), Random(f"{seed}/timing"))
        self.arriving, self.waiting, self.running, self.everybody = [], [], [], {}
        self.step, self.steps, self.busy_seconds = None, 0, 0.0

    def submit(self, request):
        self.everybody[request.identity] = progress = Progress(request)
        self.arriving.append(progress)
        self.arriving.sort(key=lambda each: each.request.queued_at)

    def abort(self, identity):
        progress = self.everybody[identity]
        progress.request.finished = True
        for place in (self.arriving, self.waiting, self.running):
            if progress in place:
                place.remove(progress)
        self.release(progress)

    def run_until(self, until):
        while True:
            self.queue()
            if self.step is None and not self.conditions.stalled:
                self.begin()
            times = [self.step[2]] if self.step else []
            times += [each.request.queued_at for each in self.arriving]
            if not times or min(times) > until:
                break
            self.now = min(times)
            if self.step and self.step[2] == self.now:
                self.complete()
        self.now = until

    def queue(self):
        while self.arriving and self.arriving[0].request.queued_at <= self.now:
            self.waiting.append(self.arriving.pop(0))

    def begin(self):
        work, batch = [], Batch()
        for progress in list(self.running):
            left = self.spec.max_num_batched_tokens - batch.tokens
            if progress in self.running and left > 0:
                self.compute(progress, min(progress.known - progress.computed, left), batch, work)
        while self.waiting and not batch.preemptions and len(self.running) < self.spec.max_num_seqs:
            left = self.spec.max_num_batched_tokens - batch.tokens
            if left <= 0 or not self.admit(self.waiting[0], left, batch, work):
                break
        self.ledger.scheduled(batch)
        if work:
            cost = self.timer.cost(batch, self.conditions, self.now)
            self.step = (work, cost, self.now + cost.seconds)

    def blocks(self, tokens):
        return -(-tokens // self.spec.block_size)

    def compute(self, progress, tokens, batch, work):
        missing = self.blocks(progress.computed + tokens) - self.blocks(progress.computed)
        while not self.pool.allocate(missing):
            victim = self.running.pop()
            self.release(victim)
            victim.request.preemptions += 1
            batch.preemptions += 1
            self.waiting.insert(0, victim)
            if victim is progress:
                return
        progress.own += missing
        self.add(progress, tokens, batch, work)

    def admit(self, progress, left, batch, work):
        request, size = progress.request, self.spec.block_size
        cached = 0
        if request.prefix is not None and self.spec.enable_prefix_caching:
            cached = self.pool.cached_blocks(request.prefix)
            cached = min(cached, request.prefix_tokens // size, (progress.known - 1) // size)
        tokens = min(progress.known - cached * size, left)
        blocks = self.blocks(cached * size + tokens) - cached + self.spec.state_blocks_per_request
        if not self.pool.allocate(blocks, request.prefix if cached else None):
            return False
        progress.computed, progress.own, progress.shared = cached * size, blocks, cached
        progress.in_prefill = True
        if request.scheduled_at is None:
            request.scheduled_at, request.cached_tokens = self.now, cached * size
            if self.spec.enable_prefix_caching:
                batch.prefix_queries += request.prompt_tokens
                batch.prefix_hits += cached * size
        self.running.append(self.waiting.pop(0))
        self.add(progress, tokens, batch, work)
        return True

    def add(self, progress, tokens, batch, work):
        progress.computed += tokens
        batch.add(progress.computed, tokens)
        work.append(progress)

    def complete(self):
        work, cost, _ = self.step
        self.step, self.steps, self.busy_seconds = None, self.steps + 1, self.busy_seconds + cost.gpu_seconds
        tokens = 0
        for progress in work:
            request = progress.request
            if request.finished or progress.computed < progress.known:
                continue
            tokens += 1
            progress.known += 1
            progress.token_times.append(self.now)
            request.generated_tokens += 1
            if request.first_token_at is None:
                request.first_token_at = self.now
                tokens += request.prompt_tokens - request.cached_tokens
                self.ledger.first_token(request, self.now)
            else:
                self.ledger.tokens(self.now - request.last_token_at)
            request.last_token_at = self.now
            if progress.in_prefill:
                progress.in_prefill = False
                self.share(progress)
        if tokens:
            self.ledger.iteration_tokens.observe(tokens)
        for progress in work:
            if not progress.request.finished and progress.request.generated_tokens == progress.request.output_tokens:
                progress.request.finished = True
                self.share(progress)
                self.running.remove(progress)
                self.release(progress)
                self.ledger.finished(progress.request, self.now)

    def share(self, progress):
        request = progress.request
        blocks = min(request.prefix_tokens, progress.computed) // self.spec.block_size
        if request.prefix is not None and self.spec.enable_prefix_caching and blocks > progress.shared:
            given = self.pool.publish(request.prefix, blocks, referenced=progress.shared > 0)
            progress.own -= given
            progress.shared += given

    def release(self, progress):
        self.pool.release(progress.own, progress.request.prefix if progress.shared else None)
        progress.own = progress.shared = progress.computed = 0
