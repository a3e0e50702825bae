package images

import (
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// How often an engine checks whether a service can serve, and how long
// that may take to start.
const (
	healthInterval = 10 * time.Second
	healthTimeout  = 6 * time.Second
	healthStart    = time.Minute
	healthRetries  = 3
)

const source = "https://github.com/weirlog/weir"

func image(p Program, binary, materials []byte, base v1.Layer, build Build) (v1.Image, error) {
	own, err := layer([]file{{name: p.Name(), content: binary, mode: 0o555}, {name: "sbom.cdx.json", content: materials}})
	if err != nil {
		return nil, err
	}
	made, err := mutate.AppendLayers(empty.Image, base, own)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(made, config(made, p, build))
}

func config(made v1.Image, p Program, build Build) *v1.ConfigFile {
	file, _ := made.ConfigFile() // of an image made in memory
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = build.Architecture, "linux", v1.Time{Time: build.Created}
	file.Config = v1.Config{User: user, WorkingDir: "/", Entrypoint: []string{path.Join("/", p.Name())}, Labels: labels(p, build)}
	if p.Serves {
		file.Config.Env = []string{"WEIR_LISTEN=:8443"}
		file.Config.ExposedPorts = map[string]struct{}{"8443/tcp": {}}
		file.Config.Healthcheck = &v1.HealthConfig{
			Test:     []string{"CMD", path.Join("/", p.Name()), "ready"},
			Interval: healthInterval, Timeout: healthTimeout, StartPeriod: healthStart, Retries: healthRetries,
		}
	}
	return file
}

func labels(p Program, build Build) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "weir/" + p.Name(),
		"org.opencontainers.image.description": p.Description,
		"org.opencontainers.image.version":     build.Version,
		"org.opencontainers.image.revision":    build.Revision,
		"org.opencontainers.image.created":     build.created(),
		"org.opencontainers.image.source":      source,
	}
}
