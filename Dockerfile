# One image for CPU and GPU: the torch wheels from PyPI carry CUDA. With a GPU: docker run --gpus all ...
FROM python:3.12-slim-bookworm

# libcurl4: FiftyOne's MongoDB is linked against it. libgl1, libglib2.0-0: OpenCV, which FiftyOne imports.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libcurl4 libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY . .
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir -e .

ENV PATH="/app/.venv/bin:$PATH" \
    AUDITOR_HOME=/data \
    FIFTYONE_DO_NOT_TRACK=1
VOLUME /data
EXPOSE 8501

# Inside a container the port is published by `docker run -p 127.0.0.1:8501:8501`.
CMD ["auditor", "app", "--address", "0.0.0.0"]
