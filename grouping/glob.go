package grouping

import "strings"

// A glob is a text with stars, each of which stands for any characters.
type glob struct {
	parts []string // between the stars; one: there is none
}

// matches compares a whole text. It looks for each part once, from left to right.
func (g glob) matches(text string) bool {
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if len(g.parts) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range g.parts[1 : len(g.parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// matchesPath also compares what follows any slash, unless the
// glob begins at the root: src/* matches /home/ci/src/a.js.
func (g glob) matchesPath(path string) bool {
	if len(path) > maxMatched {
		path = path[len(path)-maxMatched:] // its end says most
	}
	if strings.IndexByte(path, '\\') >= 0 {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	if g.matches(path) {
		return true
	}
	if first := g.parts[0]; first == "" || first[0] == '/' {
		return false
	}
	for folders := 0; folders < maxFolders; folders++ {
		_, rest, found := strings.Cut(path, "/")
		if !found {
			return false
		}
		if path = rest; g.matches(path) {
			return true
		}
	}
	return false
}

// maxFolders bounds what one path costs.
const maxFolders = 16
