# syntax=docker/dockerfile:1
# One image for every process: web, worker, beat, and the commands of manage.py.

FROM python:3.11-slim AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements.txt .
RUN /opt/venv/bin/pip install --require-hashes -r requirements.txt

FROM python:3.11-slim
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app:/app/platform \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_ARENA_MAX=2 \
    _RJEM_MALLOC_CONF=tcache:false \
    POSTDATE_HOST=0.0.0.0 \
    POSTDATE_DATA_DIR=/data
RUN groupadd --gid 1000 postdate \
    && useradd --uid 1000 --gid 1000 --no-create-home postdate \
    && install -d -o postdate -g postdate /data
COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY manage.py ./
COPY platform platform
COPY queues queues
COPY scheduler scheduler
COPY analytics analytics
COPY templates templates
RUN python -m compileall -q platform queues scheduler analytics
USER postdate
VOLUME /data
EXPOSE 8000
CMD ["granian", "--interface", "wsgi", "--host", "0.0.0.0", "--port", "8000", \
     "--http", "1", "--workers", "2", "--respawn-failed-workers", \
     "--blocking-threads", "2688", "--backpressure", "3712", "--backlog", "4096", \
     "--workers-kill-timeout", "10", "--log-level", "error", "postdate.wsgi:application"]
