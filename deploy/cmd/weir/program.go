package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/shared/atomicfile"
)

// programCommand copies this program to where the container of another
// image runs it: Weir's images have no other programs, such as cp.
type programCommand struct {
	Dir string `arg:"" help:"Directory to copy it to."`
}

// Run copies it.
func (p *programCommand) Run() error {
	name, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	return atomicfile.WriteFrom(filepath.Join(p.Dir, "weir"), 0o755, func(to io.Writer) error {
		_, err := io.Copy(to, from)
		return err
	})
}
