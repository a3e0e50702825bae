package postgres

// PartBundles is run with bundles of which blocks were removed.
const PartBundles = partBundles

// LookAtBundles has searches look at so many bundles together.
func (s *Store) LookAtBundles(many int) { s.bundles = many }
