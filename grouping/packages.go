package grouping

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirlog/weir/grouping/trace"
)

// Libraries are packages that are not a project's
// own, beyond those known by list or path.
type Libraries map[string]bool

// Packages counts, for a project, in how many kinds
// of errors each package occurs that may be its own.
type Packages struct {
	Kinds int                 `json:"kinds"` // of errors with such a package
	Seen  map[string]Presence `json:"seen"`  // by package; bounded by maxPackages
}

// Presence is how often a package was seen.
type Presence struct {
	Kinds int `json:"kinds"`
	Alone int `json:"alone"` // kinds whose traces have no other package
}

// Bounds of what counts as a library: most kinds have another package
// in common, and this one is rare, not unique, and hardly ever alone.
const (
	maxPackages       = 64
	maxPackageName    = 200 // bytes
	minKinds          = 64  // of errors, before which none is a library
	minLibraryKinds   = 3   // kinds with a library, at least
	maxLibraryPercent = 30  // of all kinds
	maxAlonePercent   = 10  // of its own kinds
)

// Add counts one kind of error with its packages, see PackagesOf.
func (p *Packages) Add(packages []string) {
	if len(packages) == 0 {
		return
	}
	if p.Kinds++; p.Seen == nil {
		p.Seen = map[string]Presence{}
	}
	for _, name := range packages {
		seen, known := p.Seen[name]
		if !known && len(p.Seen) == maxPackages {
			delete(p.Seen, p.rarest())
		}
		if seen.Kinds++; len(packages) == 1 {
			seen.Alone++
		}
		p.Seen[name] = seen
	}
}

// Due reports whether libraries are to be found again: whenever
// the number of kinds has doubled, so that hashes seldom change.
func (p *Packages) Due(since int) bool {
	return p.Kinds >= minKinds && bits.Len(uint(p.Kinds)) > bits.Len(uint(since)) //nolint:gosec // counts are not negative
}

// Libraries are the packages that are not the project's
// own; none where no package is in most of its errors.
func (p *Packages) Libraries() Libraries {
	found := Libraries{}
	if p.Kinds == 0 {
		return found
	}
	own := p.commonest()
	if 2*p.Seen[own].Kinds <= p.Kinds {
		return found
	}
	for name, seen := range p.Seen {
		if name != own && seen.Kinds >= minLibraryKinds && 100*seen.Kinds <= maxLibraryPercent*p.Kinds && 100*seen.Alone <= maxAlonePercent*seen.Kinds {
			found[name] = true
		}
	}
	return found
}

// commonest is the package in most kinds, rarest
// that in fewest. Seen must not be empty.
func (p *Packages) commonest() string { return slices.MaxFunc(p.names(), p.order) }
func (p *Packages) rarest() string    { return slices.MinFunc(p.names(), p.order) }

func (p *Packages) names() []string { return slices.Collect(maps.Keys(p.Seen)) }

func (p *Packages) order(a, b string) int {
	return cmp.Or(cmp.Compare(p.Seen[a].Kinds, p.Seen[b].Kinds), cmp.Compare(b, a))
}

// PackagesOf are the packages of an error's traces that
// may be the project's own, as far as neither paths nor
// lists exclude it; none in languages where paths do.
func PackagesOf(language trace.Language, exceptions []trace.Exception) (packages []string) {
	for _, e := range exceptions {
		for i := range e.Frames {
			if name := trace.OwnPackage(language, &e.Frames[i]); isPackage(name) && len(packages) < maxPackages && !slices.Contains(packages, name) {
				packages = append(packages, name)
			}
		}
	}
	return packages
}

// isPackage reports whether a name can be a
// stored package: without NUL, and bounded.
func isPackage(name string) bool {
	return name != "" && len(name) <= maxPackageName && strings.IndexByte(name, 0) < 0 && utf8.ValidString(name)
}
