// Package password hashes passwords slowly and compares them: argon2id in
// the PHC string format, which has the parameters, so that old hashes stay
// valid when these grow. It bounds concurrent hashes, and touches no table.
package password
