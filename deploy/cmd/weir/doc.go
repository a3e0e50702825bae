// Command weir is all of Weir in one process, with
// traffic to try it and the tools of its operators. It reads flags
// and environment; the work is in the packages of deploy.
package main
