# syntax=docker/dockerfile:1
# All programs in one image, as tasuki-agent needs tasuki-executor beside it. Nothing in it is
# linked with C (SQLite is modernc.org's), so it is built for each platform on that of the builder:
#
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example.com/tasuki:0.1.0 --push .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go generate ./internal/simulator && CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags grpcnotrace -trimpath -ldflags="-s -w" -o /out/ ./cmd/...

# Certificates of the public authorities, a user, and nothing that could be run.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /
USER 65532:65532
ENTRYPOINT ["/tasuki-controller"]
