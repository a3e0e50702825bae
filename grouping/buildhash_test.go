package grouping

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	upperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	figures   = "0123456789"
)

// Of 400 builds of a script at least 99 % are one group,
// whatever alphabet and length their hashes have.
func TestBuildHashes(t *testing.T) {
	for name, hash := range map[string]struct {
		alphabet string
		length   int
	}{
		"vite": {lowerCase + upperCase + figures + "-_", 8}, "rollup base36": {lowerCase + figures, 8}, "esbuild": {upperCase + "234567", 8},
		"webpack": {"abcdef" + figures, 20}, "parcel": {"abcdef" + figures, 8}, "base62": {lowerCase + upperCase + figures, 8},
		"6 of base36": {lowerCase + figures, 6}, "6 of base62": {lowerCase + upperCase + figures, 6}, "6 of hex": {"abcdef" + figures, 6},
	} {
		for _, pattern := range []string{"%s.js", "index-%s.js", "index.%s.js", "index_%s.js", "cart-page.%s.js"} {
			n, groups := rand.New(rand.NewPCG(7, 11)), map[Hash]int{}
			for range 400 {
				var g Grouper
				file := fmt.Sprintf(pattern, draw(n, hash.alphabet, hash.length))
				groups[g.Fingerprint(thrown("Error", "no such cart", "    at renderCart (https://shop.example/_nuxt/"+file+":1:2)\n    at openCart (https://shop.example/app.js:1:2)")).Deciding().Hash]++
			}
			if len(groups) > 5 {
				t.Errorf("%s makes %d groups of %s", name, len(groups), pattern)
			}
		}
	}
}

func draw(n *rand.Rand, alphabet string, length int) string {
	s := make([]byte, length)
	for i := range s {
		s[i] = alphabet[n.IntN(len(alphabet))]
	}
	return string(s)
}
