package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/weirlog/weir/deploy/images"
	"github.com/weirlog/weir/shared/process"
)

type command struct {
	Out        string `help:"Folder for the images and their bills of materials." default:"bin/images"`
	Repository string `help:"What the images' names begin with." env:"IMAGES" default:"weir"`
	Version    string `help:"The images' tag, and what the programs call themselves." env:"VERSION" required:""`
	Revision   string `help:"The commit." env:"REVISION"`
	Created    int64  `help:"When the commit was made, in seconds since 1970." env:"SOURCE_DATE_EPOCH"`
	Arch       string `help:"Processor: amd64 or arm64. Empty: this machine's." env:"ARCH"`
}

func main() {
	process.Once("images", "Builds every program of Weir and makes a container image of each, without an engine.", run)
}

func run(ctx context.Context, c command, _ *slog.Logger) error {
	if c.Arch == "" {
		c.Arch = runtime.GOARCH
	}
	build := images.Build{
		Repository: c.Repository, Version: c.Version, Revision: c.Revision, Created: time.Unix(c.Created, 0), Architecture: c.Arch,
	}
	programs := filepath.Join(c.Out, "programs-"+c.Arch)
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return err
	}
	if err := images.Compile(ctx, ".", programs, images.Programs, build); err != nil {
		return err
	}
	made, err := images.Pack(programs, c.Out, images.Programs, build)
	for _, m := range made {
		fmt.Fprintf(os.Stdout, "%-42s %5.1f MB  %s  %s\n", m.Tag, float64(m.Bytes)/1e6, m.Digest, m.File)
	}
	return err
}
