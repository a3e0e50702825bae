package ingest_test

import (
	"testing"

	"github.com/weirlog/weir/ingest"
)

// BenchmarkParse shows what strict validation of a body costs: the first is as
// most encoders write it, the second has a space behind each comma and colon.
func BenchmarkParse(b *testing.B) {
	for name, body := range map[string][]byte{
		"compact":  sampleBody(100, ","),
		"spacious": spacious(sampleBody(100, ",")),
	} {
		b.Run(name, func(b *testing.B) {
			parser := ingest.NewParser(ingest.DefaultLimits())
			buffer := make([]byte, len(body), len(body)+ingest.Padding)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				copy(buffer[:len(body)], body)
				if batch, err := parser.Parse(buffer); err != nil || len(batch.Accepted) != 100 {
					b.Fatal(err)
				}
			}
		})
	}
}
