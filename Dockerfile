# The app, for CPU and GPU:
#   docker build --tag label-auditor:gpu .
#   docker build --tag label-auditor:cpu --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cpu .
#   docker run -p 127.0.0.1:8501:8501 -v auditor:/data -v ~/photos:/images:ro label-auditor:cpu   (GPU: --gpus all)
FROM python:3.12-slim-bookworm

# libcurl4: FiftyOne's MongoDB is linked against it. libgl1, libglib2.0-0: OpenCV, which FiftyOne imports.
# Security updates of Debian are wanted, so no versions of packages are named.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libcurl4 libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home auditor \
    && install -d -o auditor -g auditor /data /images

WORKDIR /app
COPY . .

# Empty: the wheels of PyPI, which carry CUDA. The CPU's are some gigabytes smaller.
ARG TORCH_INDEX=""
RUN python -m venv .venv \
    && if [ -n "$TORCH_INDEX" ]; then \
         .venv/bin/pip install --no-cache-dir --constraint requirements.lock torch torchvision --index-url "$TORCH_INDEX"; \
       fi \
    && .venv/bin/pip install --no-cache-dir --constraint requirements.lock -e '.[all]'

ENV PATH="/app/.venv/bin:$PATH" \
    AUDITOR_HOME=/data \
    AUDITOR_IMPORT_ROOTS=/images \
    FIFTYONE_DATABASE_DIR=/data/fiftyone \
    FIFTYONE_DO_NOT_TRACK=1
# The account `auditor` made above.
USER 1000
VOLUME /data
EXPOSE 8501
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"]

# Inside a container the port is published by `docker run -p 127.0.0.1:8501:8501`.
CMD ["auditor", "app", "--address", "0.0.0.0"]
