package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Largest is the largest size of an image in a registry, in bytes.
const Largest = 40_000_000

// A Build describes a build of images.
type Build struct {
	Repository   string // prefix of the images' names, such as weir
	Version      string // the images' tag, and the programs' version
	Revision     string // the commit
	Created      time.Time
	Architecture string // of the processor, in Go's terms
}

func (b Build) created() string { return b.Created.UTC().Format(time.RFC3339) }

// A Made image is in a file for `docker load` and registries' tools.
type Made struct {
	Tag, Digest, File string
	Bytes             int64 // in a registry
}

// Compile builds programs for images into dir, as one go build. The
// linker omits what only a debugger needs, and sets the version,
// independent of the working tree's state.
func Compile(ctx context.Context, root, dir string, programs []Program, build Build) error {
	args := []string{
		"build", "-trimpath", "-buildvcs=false", "-o", dir + string(filepath.Separator),
		"-ldflags", "-s -w -X github.com/weirlog/weir/shared/process.version=" + build.Version,
	}
	for _, p := range programs {
		args = append(args, "./"+p.Main)
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stderr = root, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+build.Architecture)
	if err := command.Run(); err != nil {
		return fmt.Errorf("cannot compile the programs: %w", err)
	}
	return nil
}

// Pack makes images of the programs in dir, and writes them and their
// bills of materials to out.
func Pack(dir, out string, programs []Program, build Build) (made []Made, err error) {
	below, err := lay()
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		one, err := pack(p, dir, out, below, build)
		if err != nil {
			return nil, fmt.Errorf("cannot make the image of %s: %w", p.Name(), err)
		}
		made = append(made, one)
	}
	return made, nil
}

func pack(p Program, dir, out string, below foundation, build Build) (made Made, err error) {
	binary, err := os.ReadFile(filepath.Join(dir, p.Name()))
	if err != nil {
		return made, err
	}
	bill, err := materials(p, binary, below.roots, build)
	if err != nil {
		return made, err
	}
	packed, err := image(p, binary, bill, below.layer, build)
	if err != nil {
		return made, err
	}
	if err := os.WriteFile(filepath.Join(out, p.Name()+".cdx.json"), bill, 0o644); err != nil {
		return made, err
	}
	return save(p, packed, out, build)
}

// save writes an image that is small enough.
func save(p Program, packed v1.Image, out string, build Build) (made Made, err error) {
	tag, err := name.NewTag(fmt.Sprintf("%s/%s:%s", build.Repository, p.Name(), build.Version))
	if err != nil {
		return made, err
	}
	digest, err := packed.Digest()
	if err != nil {
		return made, err
	}
	made = Made{Tag: tag.String(), Digest: digest.String(), File: filepath.Join(out, p.Name()+".tar")}
	if made.Bytes, err = bytesOf(packed); err != nil {
		return made, err
	}
	if made.Bytes > Largest {
		return made, fmt.Errorf("%d bytes: more than %d", made.Bytes, Largest)
	}
	return made, tarball.WriteToFile(made.File, tag, packed)
}

func bytesOf(packed v1.Image) (sum int64, err error) {
	layers, err := packed.Layers()
	for _, l := range layers {
		size, failed := l.Size()
		sum, err = sum+size, errors.Join(err, failed)
	}
	return sum, err
}
