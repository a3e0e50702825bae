package trace

// Place is where a call is in a script that was built, as it was printed.
type Place struct {
	File         string
	Line, Column int
}

// Written is where a call was written, by a source map.
type Written struct {
	File         string
	Line, Column int
	Callee       string // what stands there: the name of what is called; empty: unknown
	Unmapped     Unmapped
}

// Mapping is where calls of an error were written. Of the places that it lacks nobody asked.
type Mapping map[Place]Written

// Unmapped is why a call is shown as it was printed. Reasons are stored and shown, so they are never renamed.
type Unmapped string

// The reasons.
const (
	NoBuild    Unmapped = "no_build"    // the error names neither a release nor a debug id
	NoMap      Unmapped = "no_map"      // there was no map of this script
	NoColumn   Unmapped = "no_column"   // the line of a built script is too long to say anything
	NoPosition Unmapped = "no_position" // the script's map has nothing there
)

// Printed is a call of a script that may have been built, once somebody asked for its map.
type Printed struct {
	Function string   `json:"function,omitempty"` // as it was printed, like the next ones; empty if it still is
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Unmapped Unmapped `json:"unmapped,omitempty"` // why the call still is as it was printed; "": it is not
}

// MaxPlaces is how many calls of an error are looked up in source maps.
const MaxPlaces = 200

// Places are where the calls of scripts are that may have been built.
func (c *chain) Places() (places []Place) {
	for i := range c.frames {
		if f := &c.frames[i]; c.syntax.language == JavaScript && f.isScript() && len(places) < MaxPlaces {
			places = append(places, f.place())
		}
	}
	return places
}

func (f *Frame) place() Place {
	if f.Printed != nil && f.Printed.Unmapped == "" {
		return Place{f.Printed.File, f.Printed.Line, f.Printed.Column}
	}
	return Place{f.File, f.Line, f.Column}
}

// isScript reports whether a call is in a file that may have a map.
func (f *Frame) isScript() bool {
	return f.Line > 0 && !inEngine(f.File) && !isWasm(withoutQuery(f.File))
}

// rewrite replaces what was printed of calls by where they were written.
func (c *chain) rewrite(mapping Mapping) {
	if len(mapping) == 0 || c.syntax.language != JavaScript {
		return
	}
	for _, s := range c.spans {
		for i := s.First; i < s.End; i++ {
			f := &c.frames[i]
			written, asked := mapping[f.place()]
			if !asked || !f.isScript() {
				continue
			}
			if written.Unmapped != "" {
				f.Printed = &Printed{Unmapped: written.Unmapped}
				continue
			}
			printed := f.Printed
			if printed == nil || printed.Unmapped != "" {
				printed = &Printed{Function: f.Function, File: f.File, Line: f.Line, Column: f.Column}
			}
			var caller Written
			if i+1 < s.End {
				if _, async := cutAsync(c.frames[i+1].Function); !async {
					caller = mapping[c.frames[i+1].place()]
				}
			}
			f.Function = writtenName(printed.Function, caller.Callee)
			f.File, f.Line, f.Column, f.Printed = written.File, written.Line, written.Column, printed
		}
	}
}

// Lengths of names. Minifiers give names of one letter or two, and of three in scripts with thousands of functions.
const (
	minName   = 3 // shorter names say nothing
	ownLength = 4 // such names are those that people wrote
)

// writtenName is the name of a function in its source. Maps do not say in which function a place is, so a short name is
// replaced by what its caller calls.
func writtenName(printed, callee string) string {
	name, async := cutAsync(printed)
	last := len(scriptBreaks.afterLast(name))
	switch {
	case last >= ownLength:
		return printed
	case isIdentifier(callee):
		name = callee
	case last < minName:
		return ""
	}
	if async {
		return asyncCall + name
	}
	return name
}
