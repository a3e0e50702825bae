package prune

// A Bound is what a table keeps, and what enforces it. Every table has
// one: a test checks the catalogue.
type Bound struct {
	Table string // its name in the schema
	Keeps string // such as "the newest 1,000 facts"
	By    string // what enforces it
}

// byPruner enforces the bounds of Tables.
const byPruner = "shared/prune"

// migrations is the table that shared/pg creates in every schema.
var migrations = Bound{Table: "migrations", Keeps: "a row for each migration that there is", By: "shared/pg"}

// Bounds returns those of all tables of the Pruner.
func (p *Pruner) Bounds() []Bound {
	bounds := append([]Bound{migrations}, p.cfg.Fixed...)
	for _, table := range p.tables {
		bounds = append(bounds, Bound{Table: table.Name(), Keeps: table.Keeps(), By: byPruner})
	}
	return bounds
}
