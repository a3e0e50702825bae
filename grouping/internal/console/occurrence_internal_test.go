package console

import (
	"fmt"
	"strings"
	"testing"
)

// Own calls stay in sight, and so do few of libraries, or all where there is no other.
func TestCallsInRows(t *testing.T) {
	for calls, want := range map[string]string{
		"": "", "oolo": "[1 2] [3] [4]", "ollllo": "[1] 4[2 3 4 5] [6]", "lllo": "3[1 2 3] [4]", "lllll": "[1 2 3 4 5]", "llo": "[1 2] [3]",
	} {
		var frames []shownFrame
		for i, of := range calls {
			frames = append(frames, shownFrame{Number: i + 1, InApp: of == 'o'})
		}
		var got []string
		for _, row := range inRows(frames) {
			var numbers []int
			for _, f := range row.Frames {
				numbers = append(numbers, f.Number)
			}
			text := fmt.Sprint(numbers)
			if row.Folded > 0 {
				text = fmt.Sprint(row.Folded) + text
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %s, want %s", calls, text, want)
		}
	}
}
