-- A public library: what it owns, who borrows it, and what is overdue.
CREATE TABLE members (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL,
  joined DATE NOT NULL,
  blocked BOOLEAN NOT NULL DEFAULT false
);
CREATE TABLE books (
  id INTEGER PRIMARY KEY,
  title VARCHAR NOT NULL,
  shelf VARCHAR,
  copies INTEGER NOT NULL CHECK (copies >= 0)
);
CREATE TABLE loans (
  id INTEGER PRIMARY KEY,
  member_id INTEGER NOT NULL REFERENCES members (id),
  book_id INTEGER NOT NULL REFERENCES books (id),
  lent DATE NOT NULL,
  returned DATE
);
CREATE TABLE fees (member_id INTEGER NOT NULL, reason VARCHAR NOT NULL, euros DECIMAL(6, 2) NOT NULL);
INSERT INTO members VALUES
  (1, 'Ines Duarte', '2019-03-01', false), (2, 'Jonas Weber', '2021-07-15', false),
  (3, 'Mei Tanaka', '2022-01-10', true), (4, 'Omar Haddad', '2023-09-30', false), (5, 'Ada Nwosu', '2024-02-02', false);
INSERT INTO books VALUES
  (1, 'The Salt Road', 'A1', 3), (2, 'Quiet Engines', 'A2', 1), (3, 'A Field of Clocks', NULL, 2),
  (4, 'Harbour Lights', 'B1', 0), (5, 'Small Arithmetic', 'B1', 4), (6, 'Maps of Nowhere', NULL, 0);
INSERT INTO loans VALUES
  (1, 1, 1, '2024-01-05', '2024-01-20'), (2, 2, 1, '2024-01-08', NULL), (3, 2, 4, '2023-11-01', NULL),
  (4, 3, 5, '2023-12-12', NULL), (5, 4, 2, '2024-02-01', '2024-02-03'), (6, 1, 5, '2024-02-10', NULL);
INSERT INTO fees VALUES (3, 'lost book', 18.50), (3, 'late', 2.00), (2, 'late', 2.00);
