// Package retention removes credentials that ended long ago, once all
// services have forgotten them. It may touch the tables that the rooms name.
package retention
