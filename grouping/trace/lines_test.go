package trace

import (
	"strings"
	"testing"
)

// One huge text does not keep its memory.
func TestDecodedMemoryIsBounded(t *testing.T) {
	var got Trace
	line := `    at total (/srv/shop/cart.js:12:9)\n`
	got.Read("", "", []string{strings.Repeat(line, 4*maxDecoded/len(line))}, nil, nil)
	if len(got.Frames()) == 0 || got.decoded.Cap() <= maxDecoded {
		t.Fatalf("%d frames, %d bytes", len(got.Frames()), got.decoded.Cap())
	}
	got.Read("", "", []string{line + line}, nil, nil)
	if len(got.Frames()) != 2 || got.decoded.Cap() > maxDecoded {
		t.Fatalf("%d frames, %d bytes", len(got.Frames()), got.decoded.Cap())
	}
}
