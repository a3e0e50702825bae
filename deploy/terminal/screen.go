package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Screen is where a command writes: a terminal, or a file or pipe in its place.
type Screen struct {
	io.Writer

	Width int  // in columns; 0: no terminal, so that nothing is cut
	Color bool // whether levels are coloured
}

// Of looks whether a writer is a terminal. NO_COLOR leaves colours out.
func Of(w io.Writer) Screen {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Screen{Writer: w}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 { // a terminal that does not know its size
		width = 80
	}
	return Screen{Writer: w, Width: width, Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Colours by the words of levels, as SGR parameters. Bounded by these words.
var colors = map[string]string{"fatal": "31;1", "error": "31", "warn": "33", "debug": "2"}

// Level colours text by a level. The text has to name it: colour is never alone.
func (s Screen) Level(level, text string) string {
	color := colors[strings.ToLower(level)]
	if !s.Color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// JSON writes a value on one line, otherwise byte for byte. On a terminal
// what it would obey or hide is escaped, which is the same JSON.
func (s Screen) JSON(value []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		return err
	}
	text := line.String()
	if s.Width > 0 {
		var escaped strings.Builder
		for _, r := range text {
			if unicode.IsPrint(r) {
				escaped.WriteRune(r)
				continue
			}
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&escaped, `\u%04x`, unit)
			}
		}
		text = escaped.String()
	}
	_, err := io.WriteString(s, text+"\n")
	return err
}

// List writes items as JSON, each on a line, or as a table of their cells;
// none is said in words.
func (s Screen) List(asJSON bool, items []json.RawMessage, none string, head []string, cells func(json.RawMessage) ([]string, error)) error {
	var rows [][]string
	for _, item := range items {
		if asJSON {
			if err := s.JSON(item); err != nil {
				return err
			}
			continue
		}
		row, err := cells(item)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	switch {
	case asJSON:
		return nil
	case len(rows) == 0:
		_, err := fmt.Fprintln(s, none)
		return err
	}
	return s.Table(head, rows)
}

// Bounds of cells on a terminal, in characters.
const (
	widestCell   = 36 // an id is whole
	narrowestEnd = 10 // of the last column, whatever the terminal
)

// Table writes a head and rows of foreign text. On a terminal long cells
// are cut, and the last ones where the line ends. Column LEVEL is coloured.
func (s Screen) Table(head []string, rows [][]string) error {
	last, widths, left := len(head)-1, make([]int, len(head)), s.Width
	table := append([][]string{head}, rows...)
	for j := range head {
		most := widestCell
		if j == last {
			most = max(left, narrowestEnd)
		}
		for i, row := range table {
			table[i] = slices.Clone(row)
			if table[i][j] = Line(row[j]); s.Width > 0 {
				table[i][j] = cut(table[i][j], most)
			}
			widths[j] = max(widths[j], utf8.RuneCountInString(table[i][j]))
		}
		left -= widths[j] + 2
	}
	var text strings.Builder
	for i, row := range table {
		for j, cell := range row[:last] {
			padded := fmt.Sprintf("%-*s  ", widths[j], cell)
			if head[j] == "LEVEL" && i > 0 {
				padded = s.Level(cell, padded)
			}
			text.WriteString(padded)
		}
		text.WriteString(row[last] + "\n")
	}
	_, err := io.WriteString(s, text.String())
	return err
}

func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
