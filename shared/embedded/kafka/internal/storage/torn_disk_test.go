//go:build disk

package storage

import (
	"strings"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// lastBatches are what the last batch of a log may be.
var lastBatches = map[string][]batch.Pair{
	"small":        {pair("k", "v")},
	"a tombstone":  {{Key: []byte("k")}},
	"of several":   {pair("a", "1"), pair("b", strings.Repeat("x", 700)), pair("c", "")},
	"of zeros":     {pair("k", strings.Repeat("\x00", 300))},
	"ending so":    {pair("k", "value"+strings.Repeat("\x00", 40))},
	"over sectors": {pair("k", strings.Repeat("abc", 500))},
	"over pages":   {pair("k", strings.Repeat("abc", 4000))},
}
