"""A clinic: doctors with supervisors, patients, appointments with diagnoses and prescriptions, laboratory results."""

from datetime import date
from decimal import Decimal
from random import Random

from statements import Rows, Value, day_in, seldom, time_in

DDL = """
CREATE TABLE departments (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL UNIQUE,
  floor INTEGER
);
CREATE TABLE doctors (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL,
  department_id INTEGER REFERENCES departments (id),
  hired DATE NOT NULL,
  supervisor_id INTEGER REFERENCES doctors (id)
);
CREATE TABLE patients (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL,
  born DATE NOT NULL,
  sex VARCHAR CHECK (sex IN ('f', 'm', 'x')),
  city VARCHAR,
  blood_type VARCHAR,
  family_doctor_id INTEGER REFERENCES doctors (id)
);
CREATE TABLE conditions (
  code VARCHAR PRIMARY KEY,
  name VARCHAR NOT NULL,
  chronic BOOLEAN NOT NULL
);
CREATE TABLE drugs (
  id INTEGER PRIMARY KEY,
  name VARCHAR NOT NULL UNIQUE,
  maker VARCHAR
);
CREATE TABLE appointments (
  id INTEGER PRIMARY KEY,
  patient_id INTEGER NOT NULL REFERENCES patients (id),
  doctor_id INTEGER NOT NULL REFERENCES doctors (id),
  starts_at TIMESTAMP NOT NULL,
  minutes INTEGER NOT NULL CHECK (minutes > 0),
  status VARCHAR NOT NULL CHECK (status IN ('booked', 'kept', 'missed', 'cancelled')),
  fee DECIMAL(7, 2)
);
CREATE TABLE diagnoses (
  appointment_id INTEGER NOT NULL REFERENCES appointments (id),
  condition_code VARCHAR NOT NULL REFERENCES conditions (code),
  severity INTEGER CHECK (severity BETWEEN 1 AND 4),
  PRIMARY KEY (appointment_id, condition_code)
);
CREATE TABLE prescriptions (
  id INTEGER PRIMARY KEY,
  appointment_id INTEGER NOT NULL REFERENCES appointments (id),
  drug_id INTEGER NOT NULL REFERENCES drugs (id),
  daily_dose_mg DOUBLE,
  days INTEGER NOT NULL CHECK (days > 0)
);
CREATE TABLE lab_results (
  id INTEGER PRIMARY KEY,
  patient_id INTEGER NOT NULL REFERENCES patients (id),
  test VARCHAR NOT NULL,
  taken_on DATE NOT NULL,
  value DOUBLE,
  unit VARCHAR NOT NULL
);
CREATE TABLE staff_accounts (
  user_name VARCHAR PRIMARY KEY,
  doctor_id INTEGER REFERENCES doctors (id),
  role VARCHAR NOT NULL CHECK (role IN ('admin', 'clinician', 'reception')),
  password_hash VARCHAR NOT NULL
);
"""
_DEPARTMENTS = [
    *((1, "Cardiology", 2), (2, "Paediatrics", 1), (3, "Dermatology", 3), (4, "Orthopaedics", 2)),
    *((5, "Neurology", 3), (6, "Telemedicine", None)),
]
_DOCTORS = [
    *(("Anja Moll", 1, None), ("Bruno Reyes", 1, 1), ("Clara Osei", 1, 1), ("Dmitri Vale", 2, None)),
    *(("Elin Strand", 2, 4), ("Farid Nasser", 3, None), ("Greta Lund", 4, None), ("Hamid Khoury", 4, 7)),
    *(("Ida Moll", 4, 8), ("Jan Peeters", 5, None), ("Katya Orlov", 5, 10), ("Leo Marchetti", None, 1)),
]
_CONDITIONS = [
    *(("I10", "Hypertension", True), ("I48", "Atrial fibrillation", True), ("J06", "Common cold", False)),
    *(("L20", "Atopic dermatitis", True), ("M54", "Back pain", False), ("S82", "Leg fracture", False)),
    *(("G43", "Migraine", True), ("E11", "Type 2 diabetes", True), ("B05", "Measles", False)),
]
_DRUGS = [
    *((1, "Ramipril", "Orbis"), (2, "Bisoprolol", "Orbis"), (3, "Ibuprofen", "Calder"), (4, "Paracetamol", None)),
    *((5, "Metformin", "Venn"), (6, "Sumatriptan", "Calder"), (7, "Hydrocortisone", "Venn"), (8, "Warfarin", None)),
]
_NAMES = "Abel Bente Cato Dina Even Fay Gus Hana Ivo Jette Koen Lena Mads Nora Otis Petra Quin Rune Siri Toma".split()
_FAMILIES = "Aas Brandt Cruz Dekker Eide Fournier Gallo Haas".split()
_TESTS = (("HbA1c", 4.8, 9.5, "%"), ("LDL", 1.6, 5.4, "mmol/L"), ("CRP", 0.3, 60.0, "mg/L"))
_STATUS = ("kept",) * 6 + ("missed", "cancelled")


def rows(random: Random) -> Rows:
    """The rows by table."""
    appointments = _appointments(random)
    kept = [int(str(row[0])) for row in appointments if row[5] == "kept"]
    return {
        "departments": _DEPARTMENTS,
        "doctors": _doctors(random),
        "patients": _patients(random),
        "conditions": _CONDITIONS,
        "drugs": _DRUGS,
        "appointments": appointments,
        "diagnoses": [diagnosis for number in kept for diagnosis in _diagnoses(random, number)],
        "prescriptions": _prescriptions(random, kept),
        "lab_results": _lab_results(random),
        "staff_accounts": _accounts(random),
    }


def _doctors(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for number, (name, department, supervisor) in enumerate(_DOCTORS, start=1):
        hired: Value = day_in(random, date(2008, 1, 1), date(2024, 6, 30))
        if name == "Katya Orlov":
            hired = made[-1][3]  # on the same day as her supervisor
        made.append((number, name, department, hired, supervisor))
    return made


def _patients(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for number in range(1, 46):
        name = made[-1][1] if number in (14, 31) else f"{random.choice(_NAMES)} {random.choice(_FAMILIES)}"
        born = day_in(random, date(1938, 1, 1), date(2023, 12, 31))
        sex = seldom(random, 0.1, random.choice("ffmmx"))
        city = seldom(random, 0.1, random.choice(("Leiden", "Delft", "Gouda", "Utrecht")))
        blood = seldom(random, 0.3, random.choice(("0+", "0+", "A+", "A+", "A-", "B+", "AB-")))
        made.append((number, name, born, sex, city, blood, seldom(random, 0.3, random.choice((1, 2, 4, 5, 7, 12)))))
    return made


def _appointments(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    times = sorted(time_in(random, date(2023, 1, 1), date(2025, 3, 31), range(8, 17)) for _ in range(160))
    for number, at in enumerate(times, start=1):
        # Patients 41 to 45 never came; doctor 11 sees nobody.
        patient = random.randrange(1, 41)
        doctor = random.choice((1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 12))
        status = "booked" if at.date() >= date(2025, 3, 1) else random.choice(_STATUS)
        fee = Decimal(random.choice(("45.00", "60.00", "60.00", "85.00", "120.00"))) if status == "kept" else None
        if status == "missed":
            fee = Decimal("20.00") if random.random() < 0.5 else None
        if status == "kept" and random.random() < 0.1:
            fee = None
        made.append((number, patient, doctor, at, random.choice((15, 15, 20, 30, 30, 45, 60)), status, fee))
    return made


def _diagnoses(random: Random, appointment: int) -> list[tuple[Value, ...]]:
    # Nobody has measles.
    codes = random.sample([code for code, *_ in _CONDITIONS[:-1]], random.choice((0, 1, 1, 1, 2, 2, 3)))
    return [(appointment, code, seldom(random, 0.2, random.randrange(1, 5))) for code in codes]


def _prescriptions(random: Random, kept: list[int]) -> list[tuple[Value, ...]]:
    chosen = sorted(random.choices(kept, k=80))
    doses = (5.0, 10.0, 50.0, 200.0, 400.0, 500.0)
    # Warfarin is never prescribed.
    made: list[tuple[Value, ...]] = []
    for number, appointment in enumerate(chosen, start=1):
        drug, dose = random.randrange(1, 8), seldom(random, 0.15, random.choice(doses))
        if drug == 7:
            dose = None  # an ointment
        made.append((number, appointment, drug, dose, random.choice((5, 7, 10, 30, 90))))
    return made


def _lab_results(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for number in range(1, 111):
        test, least, most, unit = random.choice(_TESTS)
        value = seldom(random, 0.1, round(random.uniform(least, most), 1))
        made.append(
            (number, random.randrange(1, 31), test, day_in(random, date(2024, 1, 1), date(2025, 3, 31)), value, unit)
        )
    return made


def _accounts(random: Random) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for number, (name, *_) in enumerate(_DOCTORS, start=1):
        role = "admin" if number in (1, 10) else "clinician"
        made.append((name.split()[0].lower(), number, role, _hash(random)))
    return [*made, *((desk, None, "reception", _hash(random)) for desk in ("desk1", "desk2"))]


def _hash(random: Random) -> str:
    return f"{random.getrandbits(64):016x}"
