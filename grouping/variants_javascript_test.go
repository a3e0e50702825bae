package grouping

var javascriptVariants = []variants{{
	name: "node",
	base: thrown("Error", "connect ECONNREFUSED 10.0.0.1:5432", `
Error: connect ECONNREFUSED 10.0.0.1:5432
    at Pool.acquire (/home/alice/app/src/db/pool.js:36:2)
    at async Object.findUser [as find] (/home/alice/app/src/users.js:10:5)
    at async /home/alice/app/src/server.js:112:38
    at Layer.handle (/home/alice/app/node_modules/express/lib/router/layer.js:95:5)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)`),
	same: map[string]Error{"host, path, lines, runtime": thrown("Error", "connect ECONNREFUSED 10.9.8.7:5433", `
    at Pool.acquire (file:///srv/releases/20240101/src/db/pool.js:37:22)
    at async findUser (/srv/releases/20240101/src/users.js:11:5)
    at async /srv/releases/20240101/src/server.js:113:8
    at Layer.handle [as handle_request] (/srv/releases/20240101/node_modules/express/lib/router/layer.js:99:5)`)},
	other: map[string]Error{
		"function": thrown("Error", "connect ECONNREFUSED 10.0.0.1:5432", `
    at Pool.release (/home/alice/app/src/db/pool.js:36:2)
    at async findUser (/home/alice/app/src/users.js:10:5)
    at async /home/alice/app/src/server.js:112:38`),
		"type": thrown("AbortError", "connect ECONNREFUSED 10.0.0.1:5432", `
    at Pool.acquire (/home/alice/app/src/db/pool.js:36:2)
    at async findUser (/home/alice/app/src/users.js:10:5)
    at async /home/alice/app/src/server.js:112:38`),
	},
}, {
	name: "node cause",
	base: thrown("Error", "cannot load", `
Error: cannot load
    at load (/app/load.js:1:2) {
  [cause]: TypeError: Cannot read properties of undefined (reading 'id')
      at parseUser (/app/parse.js:3:4)
      at load (/app/load.js:1:2)
}`),
	same: map[string]Error{"wrapper": thrown("Error", "request failed", `
    at handle (/app/handle.js:7:2) {
  [cause]: TypeError: Cannot read properties of undefined (reading 'name')
      at parseUser (/app/parse.js:5:4)`)},
	other: map[string]Error{"cause": thrown("Error", "cannot load", `
    at load (/app/load.js:1:2) {
  [cause]: TypeError: Cannot read properties of undefined (reading 'id')
      at parseOrder (/app/parse.js:3:4)`)},
}, {
	name: "bundles",
	base: thrown("TypeError", "e is undefined", `
TypeError: e is undefined
    at renderCart (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:64:25112)
    at t (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:1:112)
    at HTMLButtonElement.<anonymous> (https://cdn.acme.com/assets/index-DkYxQw9z.js:1:1)`),
	same: map[string]Error{
		"hashes and hosts": thrown("TypeError", "e is undefined", `
    at renderCart (https://eu.acme.net/static/js/main.99aa00bb.chunk.js?v=2:65:99)
    at n (https://eu.acme.net/static/js/main.99aa00bb.chunk.js:1:113)
    at HTMLButtonElement.<anonymous> (https://eu.acme.net/assets/index-PPqq11zz.js:1:1)`),
		"firefox": thrown("TypeError", "e is undefined", `
renderCart@https://eu.acme.net/static/js/main.99aa00bb.chunk.js?v=2:65:99
t@https://eu.acme.net/static/js/main.99aa00bb.chunk.js:1:113`),
	},
	other: map[string]Error{"function": thrown("TypeError", "e is undefined", `
    at renderList (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:64:25112)
    at t (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:1:112)`)},
}, {
	name: "firefox",
	base: thrown("InternalError", "cannot find the node", `
foo@http://a.example/path/to/file.js?x=1:41:13
place/<@http://a.example/path/to/file.js?x=1:43:13
async*bar@http://a.example/path/to/file.js line 26 > eval:1:30
http://a.example/path/to/other.js:5:1`),
	same: map[string]Error{"lines, hosts": thrown("InternalError", "cannot find the node", `
foo@https://b.example/v2/file.js:44:1
async*bar@https://b.example/v2/file.js line 27 > eval:1:30
https://b.example/v2/other.js:6:1`)},
	other: map[string]Error{"function": thrown("InternalError", "cannot find the node", `
baz@http://a.example/path/to/file.js?x=1:41:13
async*bar@http://a.example/path/to/file.js line 26 > eval:1:30
http://a.example/path/to/other.js:5:1`)},
}, {
	name: "safari",
	base: thrown("Error", "wrong state", `
change@http://a.example/app.js:3:9
forEach@[native code]
global code@http://a.example/app.js:48:22`),
	same: map[string]Error{"lines": thrown("Error", "wrong state", `
change@http://a.example/app.js:4:19
forEach@[native code]
global code@http://a.example/app.js:50:2`)},
	other: map[string]Error{"function": thrown("Error", "wrong state", `
close@http://a.example/app.js:3:9
forEach@[native code]
global code@http://a.example/app.js:48:22`)},
}}
