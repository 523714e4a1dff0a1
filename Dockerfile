# Firnline as a container: the server by default, a worker with `worker`.
#   docker build -t firnline:0.1.0 . && docker run -v firnline:/data firnline:0.1.0 keys create
#   docker run -p 8080:8080 -v firnline:/data firnline:0.1.0
# The digest is of the image for all platforms. To update: docker buildx imagetools inspect IMAGE:TAG
FROM python:3.13.16-slim-trixie@sha256:bf44cdfcb76cd3b41e879bc058fc37ec5872002ccfde7fcb765e218cde0cd79c AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
COPY tools/wheel tools/wheel
RUN python -m venv /opt/firnline \
    && /opt/firnline/bin/pip install --no-cache-dir ".[server,mcp,recall,otel,postgres,mongo]"

FROM python:3.13.16-slim-trixie@sha256:bf44cdfcb76cd3b41e879bc058fc37ec5872002ccfde7fcb765e218cde0cd79c
RUN useradd --system --uid 10001 --home-dir /data --create-home firnline
COPY --from=build /opt/firnline /opt/firnline
ENV PATH=/opt/firnline/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    FIRNLINE_STORE=sqlite:////data/firnline.db \
    FIRNLINE_HOST=0.0.0.0 \
    FIRNLINE_PORT=8080 \
    FIRNLINE_LOG_JSON=true
USER firnline
VOLUME /data
EXPOSE 8080
# The store's health, not the model's: without its model, a chat still has its memory.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/readyz')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["firnline"]
CMD ["serve"]
