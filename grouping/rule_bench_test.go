package grouping

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/ruletext/line"
)

// manyRules are as many as a project may have, none of which matches.
func manyRules() string {
	var b strings.Builder
	for i := range line.MaxRules {
		switch i % 5 {
		case 0:
			fmt.Fprintf(&b, "ignore function:*helper%d*\n", i)
		case 1:
			fmt.Fprintf(&b, "library path:src/generated%d/*\n", i)
		case 2:
			fmt.Fprintf(&b, "same \"Kind %d\" type:*Kind%d message:*of\" kind \"%d*\n", i, i, i)
		case 3:
			fmt.Fprintf(&b, "group by type, metadata.tenant where service:service%d\n", i)
		default:
			fmt.Fprintf(&b, "scrub /ord%d-[A-Z]+/\n", i)
		}
	}
	return b.String()
}

// What the rules of a project cost an error: none cost nothing.
func BenchmarkRules(b *testing.B) {
	globs := strings.Repeat("same A type:*aa*ab*ac*ad*x message:*aa*ab*ac*ad*x message:*aaaaaaaa*aaaaab*aaa*x\n", line.MaxRules)
	paths := strings.Repeat("ignore path:a/*/a/*/b function:*a*a*a*a*x module:*a*a*a*a*x\n", line.MaxRules)
	deep := "E: " + strings.Repeat("a", 400) + "\n" + strings.Repeat("\tat "+strings.Repeat("a.", 40)+strings.Repeat("a", 300)+"("+strings.Repeat("a/", 100)+".java:1)\n", 200)
	chain := strings.Repeat(strings.Repeat("a", 60)+"Exception: "+strings.Repeat("ab ac ad ", 60)+"\n\tat a.b.C.d(C.java:1)\nCaused by: ", 60)
	hostile := `scrub /(?:[a-z ]*a){5}[^a-z]{1,20}X/`
	long := ruledTrace + "\n" + strings.Repeat("Caused by: F: "+strings.Repeat("ab cd ", 300)+"\n\tat com.acme.A.b(A.java:1)\n", 60)
	for _, of := range []struct{ name, rules, trace string }{
		{"no-rules", "", ruledTrace}, {"one", "ignore function:ok", ruledTrace}, {"50", manyRules(), ruledTrace}, {"scrubs", "scrub email\nscrub ip\nscrub card\nscrub uuid\nscrub token", ruledTrace},
		{"long/no-rules", "", long}, {"long/50", manyRules(), long}, {"long/scrubs", "scrub email\nscrub ip\nscrub card\nscrub uuid\nscrub token", long}, {"long/hostile", hostile, long},
		{"chain/no-rules", "", chain}, {"chain/globs", globs, chain}, {"deep/no-rules", "", deep}, {"deep/paths", paths, deep},
	} {
		b.Run(of.name, func(b *testing.B) {
			var g Grouper
			var set *Ruleset
			if of.rules != "" {
				set = mustRules(b, of.rules)
			}
			e := ruled(set, &EntryContext{Service: "pay"}, of.trace)
			b.ReportAllocs()
			for b.Loop() {
				_ = g.Fingerprint(e).Joining()
			}
		})
	}
}
