package former

import (
	"github.com/weirlog/weir/grouping"
	v2 "github.com/weirlog/weir/grouping/internal/former/v2"
)

// Grouper fingerprints errors one after another and reuses its memory. It must not be used by two goroutines at once.
// Its zero value is ready.
type Grouper struct{ second v2.Grouper }

// Hashes are those by which the former versions would have found the group of e, in the order in which they looked.
func (g *Grouper) Hashes(e grouping.Error) []grouping.ScopedHash { return g.second.Hashes(e) }
