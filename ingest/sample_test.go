package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// sampleEntry is a typical entry of about 480 bytes, every tenth with an error.
func sampleEntry(random *rand.Rand, index int) string {
	level := [...]string{"debug", "info", "warn", "error"}[random.IntN(4)]
	text := fmt.Sprintf(`{"timestamp":"2026-03-14T09:26:%02d.%03dZ","level":%q,`+
		`"message":"request %d to /v1/orders/%d finished with status %d after retrying the upstream %d times","environment":"production",`+
		`"metadata":{"request_id":"%016x%016x","user_id":%d,"duration_ms":%.3f,"region":"eu-central-1","cached":%t,"status":%d,"route":"/v1/orders/{id}","tags":["a","b"]}`,
		random.IntN(60), random.IntN(1000), level, index, random.IntN(1e6), 200+random.IntN(300), random.IntN(4),
		random.Uint64(), random.Uint64(), random.IntN(1e7), random.Float64()*1000, random.IntN(2) == 0, 200+random.IntN(300))
	if index%10 == 0 {
		text += `,"error":{"type":"TimeoutError","message":"deadline exceeded","stack_trace":["at handle (/app/orders.js:10:5)",` +
			`"at next (/app/router.js:120:13)","at run (/app/server.js:44:9)","at main (/app/index.js:3:1)"],"context":{"attempt":3}}`
	}
	return text + "}"
}

func sampleBody(n int, separator string) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	entries := make([]string, n)
	for i := range entries {
		entries[i] = sampleEntry(random, i)
	}
	return []byte(`{"logs":[` + strings.Join(entries, separator) + `]}`)
}

// spacious is body with a space behind each comma and colon outside
// of strings, as many encoders write it.
func spacious(body []byte) []byte {
	var out []byte
	inside, escaped := false, false
	for _, c := range body {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}
