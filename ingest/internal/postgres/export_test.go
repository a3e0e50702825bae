package postgres

// LookAtBundles has searches look at so many bundles together.
func (s *Store) LookAtBundles(many int) { s.bundles = many }
