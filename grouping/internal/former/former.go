package former

import (
	"github.com/weirlog/weir/grouping"
	v2 "github.com/weirlog/weir/grouping/internal/former/v2"
	v3 "github.com/weirlog/weir/grouping/internal/former/v3"
	v4 "github.com/weirlog/weir/grouping/internal/former/v4"
)

// Grouper fingerprints one error after another and reuses its memory. It
// must not be used by two goroutines at once. Its zero value is ready.
type Grouper struct {
	second v2.Grouper
	third  v3.Grouper
	fourth v4.Grouper
}

// Hashes are those by which versions from oldest on would have
// found the group of e; the version before this one comes last.
func (g *Grouper) Hashes(e grouping.Error, oldest int) (hashes []grouping.ScopedHash) {
	for _, former := range [...]struct {
		version int
		hashes  func(grouping.Error) []grouping.ScopedHash
	}{{2, g.second.Hashes}, {3, g.third.Hashes}, {4, g.fourth.Hashes}} { // the second holds the first
		if former.version >= oldest {
			hashes = append(hashes, former.hashes(e)...)
		}
	}
	return hashes
}
