package frames_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/frames"
)

// scan passes text in pieces, and returns the headers found.
func scan(text []byte, pieces func(left int) int) (found []frames.Header, s frames.Scanner) {
	for len(text) > 0 {
		n := pieces(len(text))
		for header, rest, ok := s.Next(text[:n]); ok; header, rest, ok = s.Next(rest) {
			found = append(found, header)
		}
		text = text[n:]
	}
	return found, s
}

// Frames are found wherever the bytes are cut.
func TestScannerFindsFramesInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var want []frames.Header
		var text []byte
		for range random.IntN(20) {
			header := frames.Header{
				Length: random.IntN(40) * random.IntN(2) * random.IntN(500), Type: frames.Type(random.IntN(12)),
				Flags: byte(random.IntN(256)), Stream: random.Uint32() >> 1,
			}
			want = append(want, header)
			text = frames.Append(text, header, bytes.Repeat([]byte{0xff}, header.Length))
		}
		for name, pieces := range map[string]func(int) int{
			"whole": func(left int) int { return left }, "bytes": func(int) int { return 1 },
			"random": func(left int) int { return 1 + random.IntN(left) },
		} {
			got, s := scan(text, pieces)
			if !slices.Equal(got, want) || !s.Between() {
				t.Fatalf("%s: found %v, want %v; between frames: %t", name, got, want, s.Between())
			}
		}
		if _, s := scan(append(text, 0), func(left int) int { return left }); s.Between() {
			t.Fatal("within a header it is between frames")
		}
	}
}

// What asks for nothing costs, whatever it is padded with; the bodies of
// requests are free from 1 KiB a frame on.
func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		header frames.Header
		want   int64
	}{
		"settings":           {frames.Header{Type: frames.Settings, Length: 6}, 8},
		"ping":               {frames.Header{Type: frames.Ping, Length: 8}, 8},
		"reset":              {frames.Header{Type: frames.ResetStream, Length: 4}, 8},
		"unknown type":       {frames.Header{Type: 0xee}, 8},
		"empty continuation": {frames.Header{Type: frames.Continuation}, 8},
		"large header block": {frames.Header{Type: frames.Headers, Length: 16 << 10}, 80},
		"window update":      {frames.Header{Type: frames.WindowUpdate, Length: 4}, 2},
		"no data":            {frames.Header{}, 8},
		"padding alone":      {frames.Header{Length: 256, Flags: 0x8}, 8},
		"a byte":             {frames.Header{Length: 1}, 4},
		"an entry":           {frames.Header{Length: 200}, 1},
		"a full frame":       {frames.Header{Length: 16 << 10}, 0},
	} {
		if got := frames.Cost(c.header); got != c.want {
			t.Errorf("%s costs %d, want %d", name, got, c.want)
		}
	}
}

func TestGoAwayCode(t *testing.T) {
	var s frames.Scanner
	header, rest, ok := s.Next(frames.AppendGoAway(nil, 7, 0xb))
	if code, known := frames.GoAwayCode(rest); !ok || header.Type != frames.GoAway || !known || code != 0xb {
		t.Errorf("%v %t: code %d, %t", header, ok, code, known)
	}
	if _, known := frames.GoAwayCode(rest[:7]); known {
		t.Error("seven bytes have a code")
	}
}
