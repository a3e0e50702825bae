// Package retention removes credentials that ended long ago, once
// all services have forgotten them: the rooms name their tables. It
// may touch the tables that it is given.
package retention
