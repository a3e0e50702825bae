package console

import (
	"strconv"
	"strings"

	"github.com/weirlog/weir/ledger"
)

// units are the units of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// sizeText formats a size exactly, as parseSize reads it; empty for 0.
func sizeText(bytes int64) string {
	for _, unit := range units {
		if bytes > 0 && bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + " " + unit.name
		}
	}
	return ""
}

// parseSize reads a size such as "1.5 GiB", without a unit in bytes,
// rounded down. ok is false unless it is at least a byte.
func parseSize(text string) (bytes int64, ok bool) {
	number, factor := text, int64(1)
	for _, unit := range units {
		if before, found := strings.CutSuffix(text, unit.name); found {
			number, factor = strings.TrimSpace(before), unit.bytes
			break
		}
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return whole * factor, whole > 0 && whole <= ledger.MaxGrant/factor
	}
	size, err := strconv.ParseFloat(number, 64)
	size *= float64(factor)
	return int64(size), err == nil && size >= 1 && size <= float64(ledger.MaxGrant)
}
