# pinchpoint in a container: small, not root, fine with a read-only root file system.
#   docker build -t pinchpoint .
#   docker run --gpus all -p 10770:10770 pinchpoint
# BASE may be any image with Python 3.11 or newer as `python3`. Pin it by digest where builds must repeat to the byte:
#   docker build --build-arg BASE=docker.io/library/python:3.11-slim-bookworm@sha256:... -t pinchpoint .
ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
# Dependencies first: this layer changes with the lock files only.
COPY requirements.lock requirements-build.lock ./
RUN python3 -m venv /build && /build/bin/pip install --require-hashes -r requirements-build.lock \
    && python3 -m venv /opt/pinchpoint && /opt/pinchpoint/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/pinchpoint/bin/pip install --no-index --no-deps /wheel/*.whl \
    && /opt/pinchpoint/bin/pip uninstall --yes pip setuptools

FROM ${BASE}
LABEL org.opencontainers.image.title="pinchpoint" \
      org.opencontainers.image.description="Names the bottleneck of LLM inference on GPUs, for Prometheus" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/pinchpoint /opt/pinchpoint
# What hosted probes have cost must outlive a restart; a named volume outlives the container too.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/pinchpoint
VOLUME /var/lib/pinchpoint
# NVML is all that is needed of the driver: the NVIDIA container toolkit mounts it under "utility".
ENV PATH=/opt/pinchpoint/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STATE_DIRECTORY=/var/lib/pinchpoint \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=utility
USER 65532:65532
WORKDIR /
EXPOSE 10770
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:10770/-/healthy', timeout=2)"]
ENTRYPOINT ["pinchpoint"]
CMD ["run"]
