// Package ruletext is what the rules of a project are whatever they are about: one
// text, with the versions that it had. Their routes and their page are in
// ruletext/routes. It does not know what the rules say, nor where they are kept.
package ruletext
