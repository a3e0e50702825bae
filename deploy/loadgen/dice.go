package loadgen

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
)

// A dice generates all that varies. The same seed makes the same
// traffic, except for the time.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, seed))}
}

// placeholder is {id}, {user}, {hex}, {ip}, {ms}, or {40~9} for a number
// from 40 to 49.
var placeholder = regexp.MustCompile(`\{(id|user|hex|ip|ms|\d+~\d+)\}`)

// expand fills the placeholders of a template.
func (d dice) expand(template string) string {
	return placeholder.ReplaceAllStringFunc(template, func(found string) string {
		switch found {
		case "{id}":
			return strconv.Itoa(10_000 + d.IntN(90_000))
		case "{user}":
			return "usr_" + strconv.FormatUint(d.Uint64N(1<<30), 36)
		case "{hex}":
			return fmt.Sprintf("%08x", d.Uint32())
		case "{ip}":
			return fmt.Sprintf("10.%d.%d.%d", d.IntN(4), d.IntN(256), 1+d.IntN(254))
		case "{ms}":
			return strconv.Itoa(1 + int(d.ExpFloat64()*40))
		}
		var low, width int
		_, _ = fmt.Sscanf(found, "{%d~%d}", &low, &width)
		return strconv.Itoa(low + d.IntN(width+1))
	})
}

func pick[T any](d dice, items []T) T {
	return items[d.IntN(len(items))]
}
