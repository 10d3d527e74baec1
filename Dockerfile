# An image that runs an app as a service:
#     docker build -t penstock .
#     docker run --rm -v "$PWD/app.py:/app/app.py:ro" -v penstock-state:/state penstock /app/app.py
FROM python:3.11-slim

# Java is what Spark runs on; an app that runs on a node needs none.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY penstock ./penstock
# What every app needs is compiled here, for whoever runs the image.
RUN pip install --no-cache-dir --constraint requirements.lock '.[all]' && rm -rf /src && cd / && penstock warm

RUN useradd --create-home --uid 10001 penstock && install --directory --owner penstock /state /app
USER penstock
WORKDIR /app
VOLUME /state

# SIGTERM, which `docker stop` sends, drains; give it longer than the stop_grace of the run.
STOPSIGNAL SIGTERM
ENTRYPOINT ["penstock", "run"]
CMD ["/app/app.py"]
