package grouping

var pythonVariants = []variants{{
	name: "python",
	base: thrown("ValueError", "invalid literal for int() with base 10: 'abc'", `
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 975, in run
    self._target()
  File "/home/alice/app/orders/views.py", line 12, in create
    total = parse(x)
            ^^^^^^^^
  File "/home/alice/app/orders/money.py", line 40, in parse
    return int(x)
ValueError: invalid literal for int() with base 10: 'abc'`),
	same: map[string]Error{
		"lines, paths, values": thrown("ValueError", "invalid literal for int() with base 10: 'xyz'", `
  File "/usr/lib/python3.12/threading.py", line 1000, in run
  File "C:\srv\app\orders\views.py", line 14, in create
    total = parse(x)
  File "C:\srv\app\orders\money.py", line 41, in parse`),
	},
	other: map[string]Error{
		"function": thrown("ValueError", "invalid literal for int() with base 10: 'abc'", `
  File "/home/alice/app/orders/views.py", line 12, in create
  File "/home/alice/app/orders/money.py", line 40, in parse_all`),
		"type": thrown("OverflowError", "invalid literal for int() with base 10: 'abc'", `
  File "/home/alice/app/orders/views.py", line 12, in create
  File "/home/alice/app/orders/money.py", line 40, in parse`),
		"caller": thrown("ValueError", "invalid literal for int() with base 10: 'abc'", `
  File "/home/alice/app/orders/views.py", line 12, in update
  File "/home/alice/app/orders/money.py", line 40, in parse`),
	},
}, {
	name: "python chain",
	base: thrown("app.NotFound", "no user 7", `
Traceback (most recent call last):
  File "/app/users.py", line 5, in load
    return users[key]
KeyError: 7

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/main.py", line 10, in main
    load(7)
app.NotFound: no user 7`),
	same: map[string]Error{"key and wrapper": thrown("app.Gone", "no user 8", `
Traceback (most recent call last):
  File "/srv/users.py", line 6, in load
KeyError: 8

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/web.py", line 99, in show
app.Gone: no user 8`)},
	other: map[string]Error{"cause": thrown("app.NotFound", "no user 7", `
Traceback (most recent call last):
  File "/app/users.py", line 5, in save
KeyError: 7

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/main.py", line 10, in main
app.NotFound: no user 7`)},
}}
