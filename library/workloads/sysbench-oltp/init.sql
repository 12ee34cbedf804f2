CREATE DATABASE IF NOT EXISTS sbtest;
CREATE USER IF NOT EXISTS sbtest@localhost;
GRANT ALL ON sbtest.* TO sbtest@localhost;
GRANT RELOAD ON *.* TO sbtest@localhost;
