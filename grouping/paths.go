package grouping

import (
	"fmt"
	"strings"
)

// Bounds of paths.
const (
	MaxPaths = 3   // to one thing
	maxPath  = 100 // bytes
)

// Paths say where the metadata of a project's entries has what no field of the
// entry is for, the first one with a value counting. A path is a name, or several with dots
// between: "user.id" is the member id of the object user, or a member of this name.
type Paths struct {
	Release []string `json:"release"`
	Service []string `json:"service"`
	User    []string `json:"user"`
	Host    []string `json:"host"`
}

// DefaultPaths are those of projects that have set none: what programs
// commonly name these, and OpenTelemetry does.
func DefaultPaths() Paths {
	return Paths{
		Release: []string{"release", "version", "service.version"}, Service: []string{"service", "service.name"},
		User: []string{"user.id", "user"}, Host: []string{"host", "host.name"},
	}
}

// isPath reports whether a text is a path in metadata.
func isPath(text string) bool {
	return text != "" && len(text) <= maxPath && isLine(text) && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, ".") && !strings.Contains(text, "..")
}

// Each returns the paths to each thing, by its name.
func (p *Paths) Each() map[string]*[]string { // bounded by the things
	return map[string]*[]string{"release": &p.Release, "service": &p.Service, "user": &p.User, "host": &p.Host}
}

// Check returns what is wrong with paths.
func (p Paths) Check() error {
	for name, paths := range p.Each() {
		if len(*paths) > MaxPaths {
			return Invalid{name, fmt.Sprintf("There are %d paths.", len(*paths)), fmt.Sprintf("Use at most %d.", MaxPaths)}
		}
		for _, path := range *paths {
			if !isPath(path) {
				return Invalid{name, fmt.Sprintf("%q is not a path.", path), fmt.Sprintf("Use names with dots between, such as user.id; at most %d bytes.", maxPath)}
			}
		}
	}
	return nil
}
