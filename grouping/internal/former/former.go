package former

import (
	"slices"

	"github.com/weirlog/weir/grouping"
	v2 "github.com/weirlog/weir/grouping/internal/former/v2"
	v3 "github.com/weirlog/weir/grouping/internal/former/v3"
	v4 "github.com/weirlog/weir/grouping/internal/former/v4"
)

// Grouper fingerprints errors one after another and reuses its memory. It must
// not be used by two goroutines at once. Its zero value is ready.
type Grouper struct {
	second v2.Grouper
	third  v3.Grouper
	fourth v4.Grouper
}

// Hashes are those by which the former versions would have found the group
// of e, the version before this one last.
func (g *Grouper) Hashes(e grouping.Error) []grouping.ScopedHash {
	return slices.Concat(g.second.Hashes(e), g.third.Hashes(e), g.fourth.Hashes(e))
}
