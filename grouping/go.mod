module github.com/weirlog/weir/grouping

go 1.26

require github.com/weirlog/weir/shared v0.0.0

replace github.com/weirlog/weir/shared => ../shared
