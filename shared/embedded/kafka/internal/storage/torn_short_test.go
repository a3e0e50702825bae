//go:build !disk

package storage

import (
	"strings"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// lastBatches are what the last batch of a log may be. More of them are
// tried by make test-disk.
var lastBatches = map[string][]batch.Pair{
	"small":        {pair("k", "v")},
	"ending so":    {pair("k", "value"+strings.Repeat("\x00", 40))},
	"over sectors": {pair("k", strings.Repeat("abc", 300))},
}
