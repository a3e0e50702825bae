package publisher

import "testing"

// Keys get the partitions of Java's default partitioner. The values are
// those of Apache Kafka's own UtilsTest.
func TestMurmur2(t *testing.T) {
	for text, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := int32(murmur2(text)); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", text, got, want)
		}
	}
}

// Sequences wrap after the largest int32 as in brokers.
func TestSequenceWraps(t *testing.T) {
	for _, c := range []struct {
		from int32
		n    int
		want int32
	}{{0, 5, 5}, {2147483647, 1, 0}, {2147483640, 10, 2}} {
		if got := addSequence(c.from, c.n); got != c.want {
			t.Errorf("%d and %d more is %d, want %d", c.from, c.n, got, c.want)
		}
	}
}

// No answer of a broker makes its reader panic or read beyond its bytes.
func FuzzProduceAnswer(f *testing.F) {
	f.Add(make([]byte, 40))
	f.Fuzz(func(t *testing.T, body []byte) { (&production{}).decode(body) })
}
