package kafka

import (
	"os"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A repair cuts the log at its damage, keeps what it cuts off, and the
// log goes on from there.
func TestRepair(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(t *testing.T, dir string)
		left int // records; 5: nothing is cut
	}{
		"unharmed":                                {func(*testing.T, string) {}, 5},
		"a byte has changed":                      {changeByte(segmentOf, 80), 1},
		"the end is missing":                      {cut(segmentOf, 100), 1},
		"the file is missing":                     {remove(segmentOf), 0},
		"the log and its checkpoint are damaged":  {also(changeByte(segmentOf, 80), cut(fileOf("checkpoint.json"), 10)), 1},
		"the log is damaged without a checkpoint": {also(changeByte(segmentOf, 80), remove(fileOf("checkpoint.json"))), 1},
		"the checkpoint is damaged":               {cut(fileOf("checkpoint.json"), 0), 5},
		"the producers' ids are damaged":          {changeByte(fileOf("producers"), 0), 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := start(t, Config{Dir: dir})
			create(t, b.Addr(), "test.damage")
			produce(t, b.Addr(), "test.damage", values(5)...)
			stop(t, b)
			test.harm(t, dir)
			cuts, err := Repair(dir)
			if err != nil || (len(cuts) == 1) != (test.left < 5) {
				t.Fatalf("%+v, %v", cuts, err)
			}
			for _, c := range cuts {
				if c.Topic != "test.damage" || c.From != int64(test.left) {
					t.Errorf("it reports %+v", c)
				}
				if _, err := os.Stat(c.Kept); c.Bytes > 0 && err != nil {
					t.Errorf("nothing is kept: %v", err)
				}
			}
			b = start(t, Config{Dir: dir})
			produce(t, b.Addr(), "test.damage", kgo.StringRecord(strconv.Itoa(test.left)))
			for i, r := range consume(t, b.Addr(), "test.damage", test.left+1) {
				if string(r.Value) != strconv.Itoa(i) || r.Offset != int64(i) {
					t.Errorf("offset %d holds %q, want %d", r.Offset, r.Value, i)
				}
			}
		})
	}
}

func also(harm ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, do := range harm {
			do(t, dir)
		}
	}
}
