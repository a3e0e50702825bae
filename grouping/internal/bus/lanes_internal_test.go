package bus

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// A record costs what applying it takes: many small errors more
// than one of as many bytes, unparsed entries next to nothing.
func TestCost(t *testing.T) {
	value := []byte(strings.Repeat("x", 100_000))
	of := func(errors string) int {
		return cost(bus.Record{Value: value, Headers: []bus.Header{{Key: contract.HeaderErrors, Value: []byte(errors)}}})
	}
	none, one, many := of("0"), of("1"), of("1000")
	if none >= 1000 || one < len(value) || many < 10*one {
		t.Errorf("no error costs %d, one %d, a thousand %d", none, one, many)
	}
	if most := of("9999999999"); most > 200*one {
		t.Errorf("more errors than there is room for cost %d", most)
	}
}
