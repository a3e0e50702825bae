package ingest_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
)

// The parser and the oracle agree on tens of thousands of bodies of
// legal, nearly legal and broken pieces, with and without white space.
// The seed is fixed.
func TestParseAgreesWithOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(20260314, 1))
	parser := ingest.NewParser(smallLimits)
	for range 40_000 {
		body := []byte(randomBody(random))
		if random.IntN(4) == 0 {
			body = damage(random, body)
		}
		checkAgainstOracle(t, parser, body, smallLimits)
	}
}

func pick(random *rand.Rand, from ...string) string { return from[random.IntN(len(from))] }

func blank(random *rand.Rand) string { return pick(random, "", "", "", "", " ", "\n\t", "\r\n  ") }

func randomBody(random *rand.Rand) string {
	var entries []string
	for range random.IntN(7) {
		entries = append(entries, blank(random)+randomEntry(random)+blank(random))
	}
	logs := `"logs":` + blank(random) + "[" + strings.Join(entries, ",") + "]"
	members := []string{logs}
	for range random.IntN(3) {
		members = append(members, randomName(random)+":"+randomValue(random, 0))
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return blank(random) + "{" + strings.Join(members, blank(random)+","+blank(random)) + "}" + blank(random)
}

func randomEntry(random *rand.Rand) string {
	if random.IntN(20) == 0 {
		return randomValue(random, 0)
	}
	members := []string{
		`"timestamp":"` + pick(random, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.25Z", "2024-02-29T00:00:00Z", "2026-02-29T00:00:00Z") + `"`,
		`"level":` + pick(random, `"info"`, `"warn"`, `"fatal"`, `"\u0069nfo"`, `"Info"`, `null`),
		`"message":` + pick(random, `"m"`, `""`, `"twelve bytes"`, `"thirteen byte"`, `"\u0041\u0041\u0041"`, `"ééééééé"`, `"é\n"`),
	}
	for range random.IntN(4) {
		members = append(members, randomMember(random))
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, blank(random)+","+blank(random)) + blank(random) + "}"
}

func randomMember(random *rand.Rand) string {
	name := pick(random, `"metadata"`, `"error"`, `"environment"`, `"project_id"`, `"level"`, randomName(random), randomName(random))
	value := randomValue(random, 0)
	if name == `"error"` {
		value = pick(random, `{"type":"T"}`, `{"stack_trace":["a", "b"]}`, `{"stack_trace":[1]}`, `{"context":{"a":1,"a":2},"x":1}`, `{"x":1,"y":2,"x":3}`, value)
	}
	return name + blank(random) + ":" + blank(random) + value
}

func randomName(random *rand.Rand) string {
	return pick(random, `"a"`, `"b"`, `"\u0061"`, `"a\/b"`, `"a/b"`, `"é"`, `"\u00e9"`, `""`, `"long name that takes some space"`)
}

func randomValue(random *rand.Rand, depth int) string {
	if depth > 3 || random.IntN(3) > 0 {
		return pick(random, `1`, `-0.5e+3`, `"x"`, `"\ud83d\ude00"`, `true`, `false`, `null`, `"\\\""`, `12345678901234567890`, `"日本語テキスト"`, `{}`, `[]`)
	}
	var parts []string
	array := random.IntN(2) == 0
	for range random.IntN(4) {
		part := blank(random) + randomValue(random, depth+1) + blank(random)
		if !array {
			part = blank(random) + randomName(random) + blank(random) + ":" + part
		}
		parts = append(parts, part)
	}
	if array {
		return "[" + strings.Join(parts, ",") + "]"
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// damage changes, removes, adds or moves a few bytes.
func damage(random *rand.Rand, body []byte) []byte {
	for range 1 + random.IntN(3) {
		at := random.IntN(len(body))
		switch random.IntN(4) {
		case 0:
			body[at] = "{}[]\",:\\ue0123456789.-+EtTfn \x00\x1f\xff\xc3\xa9\xed\xa0"[random.IntN(36)]
		case 1:
			body = append(body[:at:at], body[at+1:]...)
		case 2:
			body = append(body[:at:at], append([]byte{body[random.IntN(len(body))]}, body[at:]...)...)
		default:
			body = body[:at+1]
		}
		if len(body) == 0 {
			return body
		}
	}
	return body
}
