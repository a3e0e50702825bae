package ingest

import (
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	manyWords = 5  // from how many different words on a place is a variable
	maxPlaces = 48 // of a mask that are compared; what follows has to be equal
)

// joined maps each mask to the pattern that it belongs to: masks still differ
// in words without digits, such as names of people, hosts and files. What
// it finds depends on the set alone.
//
// Masks of one form are divided by the word at the place with the fewest
// different ones (IPLoM: Makanju, Zincir-Heywood and Milios, KDD 2009), until
// places have either one word or manyWords. The latter are variables (as in AEL:
// Jiang and others, QSIC 2008), if as many places stay. Drain (He and others,
// ICWS 2017) takes messages as they come, so two processors would find other
// patterns than one, and joins those that are half equal, such as "job a
// started" and "job a failed".
func joined(masks []string) map[string]string {
	forms := map[string]*joining{} // bounded by masks
	for _, mask := range masks {
		places, form := placesOf(mask)
		if forms[form] == nil {
			forms[form] = &joining{form: form, into: map[string]string{}}
		}
		forms[form].masks = append(forms[form].masks, split{mask, places})
	}
	into := make(map[string]string, len(masks))
	for _, j := range forms {
		j.divide(j.masks)
		maps.Copy(into, j.into)
	}
	return into
}

// A split is a mask with its tokens.
type split struct {
	mask   string
	places []string
}

// placesOf divides a mask into tokens and its form: the rest, with a zero for each token.
func placesOf(mask string) (places []string, form string) {
	var rest strings.Builder
	text := []byte(mask)
	for i := 0; i < len(text); {
		if len(places) == maxPlaces {
			rest.WriteString(mask[i:])
			break
		}
		end := i + 1
		token := text[i] < variables
		if !token {
			end, _ = tokenEnd(text, i)
			token = kindOfFirst(text[i:]) != separator
		}
		if token {
			places = append(places, mask[i:end])
			rest.WriteByte(0)
		} else {
			rest.WriteString(mask[i:end])
		}
		i = end
	}
	return places, rest.String()
}

// A joining finds the patterns of masks of one form.
type joining struct {
	form  string
	masks []split
	into  map[string]string // bounded by masks
}

// divide finds the patterns of some masks.
func (j *joining) divide(of []split) {
	least, fewest, same, open := -1, math.MaxInt, 0, 0
	for at := range of[0].places {
		switch words, known := wordsAt(of, at, fewest); {
		case known:
			open++
		case words > 1:
			if open++; words < fewest {
				least, fewest = at, words
			}
		case of[0].places[at][0] >= variables:
			same++
		}
	}
	if least < 0 || fewest >= enough(least) && same >= open {
		j.join(of)
		return
	}
	parts := map[string][]split{} // bounded by of
	for _, mask := range of {
		word := wordOf(mask.places[least])
		parts[word] = append(parts[word], mask)
	}
	for _, part := range parts {
		j.divide(part)
	}
}

// enough is how many words make a place a variable. Lines that begin with the
// same word are more often of one kind than those that end with it.
func enough(at int) int {
	if at == 0 {
		return 4 * manyWords
	}
	return manyWords
}

// wordsAt is how many different words masks have at a place, or more than
// most. It is known to be a variable where masks were joined there. Ids beside words
// are manyWords: db-1 and localhost are of one kind.
func wordsAt(of []split, at, most int) (words int, known bool) {
	seen, ids := map[string]bool{}, false // bounded by most
	for _, mask := range of {
		word := wordOf(mask.places[at])
		known = known || word[0] == variable
		ids = ids || word[0] == idVariable
		if len(seen) <= most {
			seen[word] = true
		}
	}
	if ids && len(seen) > 1 {
		return max(len(seen), enough(at)), known
	}
	return len(seen), known
}

// wordOf is the token, or one sign for all variables that are of a clear kind.
func wordOf(token string) string {
	if c := token[0]; c < variables && c != variable && c != idVariable {
		return string(rune(numberVariable))
	}
	return token
}

// join makes one pattern of some masks.
func (j *joining) join(of []split) {
	pattern, at := make([]byte, 0, maxMask), 0
	for _, c := range []byte(j.form) {
		if c != 0 {
			pattern = append(pattern, c)
			continue
		}
		token := of[0].places[at]
		if slices.ContainsFunc(of, func(other split) bool { return other.places[at] != token }) {
			token = string(rune(variable))
		}
		pattern, at = append(pattern, token...), at+1
	}
	for _, mask := range of {
		j.into[mask.mask] = string(pattern)
	}
}
