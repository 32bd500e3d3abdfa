# docker build -t stamp . && docker run --rm -v "$PWD/results:/stamp/results" stamp
# Built by .github/workflows/ci.yml; not built or run where this was developed.
# `docker run --rm stamp make test` runs the tests. For a GPU add `--gpus all`.
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends make git && rm -rf /var/lib/apt/lists/*
WORKDIR /stamp
COPY envs envs
RUN envs/install envs/requirements.txt
COPY . .
CMD ["make", "run"]
