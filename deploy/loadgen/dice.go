package loadgen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A dice generates all that varies. The same seed makes the same
// traffic, except for the time.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, seed))}
}

// expand fills the placeholders of a template: {id}, {user}, {hex}, {ip}, {ms},
// and {40~9} for a number from 40 to 49.
func (d dice) expand(template string) string {
	var text strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		text.WriteString(before)
		if !found {
			return text.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		value, known := d.value(name)
		if !closed || !known {
			text.WriteByte('{')
			template = rest
			continue
		}
		text.WriteString(value)
		template = after
	}
}

func (d dice) value(name string) (value string, known bool) {
	switch name {
	case "id":
		return strconv.Itoa(10_000 + d.IntN(90_000)), true
	case "user":
		return "usr_" + strconv.FormatUint(d.Uint64N(1<<30), 36), true
	case "hex":
		return fmt.Sprintf("%08x", d.Uint32()), true
	case "ip":
		return fmt.Sprintf("10.%d.%d.%d", d.IntN(4), d.IntN(256), 1+d.IntN(254)), true
	case "ms":
		return strconv.Itoa(1 + int(d.ExpFloat64()*40)), true
	}
	from, span, isRange := strings.Cut(name, "~")
	low, err := strconv.Atoi(from)
	width, err2 := strconv.Atoi(span)
	if !isRange || err != nil || err2 != nil {
		return "", false
	}
	return strconv.Itoa(low + d.IntN(width+1)), true
}

func pick[T any](d dice, items []T) T {
	return items[d.IntN(len(items))]
}
