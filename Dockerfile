# kvgate in a container: no compiler, no root, one process that takes SIGTERM itself and drains.
#
#   docker build -t kvgate .
#   docker run -p 8080:8080 -v ./config:/etc/kvgate:ro kvgate

FROM python:3.12-slim AS build
WORKDIR /src
RUN python -m venv /opt/kvgate
COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
RUN /opt/kvgate/bin/pip install --no-cache-dir --disable-pip-version-check .

FROM python:3.12-slim
LABEL org.opencontainers.image.title="kvgate" \
      org.opencontainers.image.description="Admission-controlling inference gateway" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/kvgate /opt/kvgate
# The journal's place; everything else may be read-only.
RUN install -d -o 10001 -g 10001 /var/lib/kvgate /etc/kvgate
ENV PATH=/opt/kvgate/bin:$PATH \
    HOME=/var/lib/kvgate \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /var/lib/kvgate
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
# http.client and not urllib: a proxy in the environment must not answer for us.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8080, timeout=2); c.request('GET', '/health/live'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["kvgate"]
CMD ["serve", "/etc/kvgate/gateway.yaml"]
